# One command for each thing a person wants to know.
#
#   make test    does it work?      everything, on a fresh machine
#   make bench   is it fast?        against a floor, and beside nginx: one run, one table
#   make prove   does it hold up?   the long suites; results in tests/RESULTS.md

.PHONY: test check bench prove

# The same cases each time, so that a failure is the change's; `make prove` takes
# others.
test:
	PROPTEST_RNG_SEED=$${PROPTEST_RNG_SEED:-1} cargo test --locked

# What a change must pass besides the tests.
check:
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --document-private-items

bench:
	command -v nginx > /dev/null || (apt-get update -q && apt-get install -q -y nginx-light)
	benches/all

prove:
	tests/prove
