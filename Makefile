# One command for each thing a person wants to know.
#
#   make test    does it work?      everything, on a fresh machine
#   make bench   is it fast?        against a floor, and beside nginx and a bare relay
#   make prove   does it hold up?   the long suites; results in tests/RESULTS.md

.PHONY: test test-recordings check bench prove

# The same cases each time, so that a failure is the change's; `make prove` takes
# others. All tests are run even if some fail, and the last line counts them.
# The largest binary is run in two processes: after some four hundred tests in one,
# a loaded machine has been seen to refuse it another thread.
test:
	PROPTEST_RNG_SEED=$${PROPTEST_RNG_SEED:-1} tests/count sh -c '\
	    cargo test --locked --no-fail-fast -- --skip views::; first=$$?; \
	    cargo test --locked --no-fail-fast --lib --test proxy -- views:: && exit $$first'

# The tests that look at recordings, on whatever recordings there are: those in
# LONGHAUL_TRANSCRIPTS or beside the project, else the made-up ones.
test-recordings:
	PROPTEST_RNG_SEED=$${PROPTEST_RNG_SEED:-1} tests/count sh -c '\
	    cargo test --locked --no-fail-fast --test facts --test measure --test pinned \
	        --test recall --test replay --test summaries --test superseded; first=$$?; \
	    cargo test --locked --no-fail-fast --test proxy -- \
	        economy:: nothing_gone:: summaries::recorded:: views::transcripts:: && exit $$first'

# What a change must pass besides the tests.
check:
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --document-private-items

bench:
	command -v nginx > /dev/null || (apt-get update -q && apt-get install -q -y nginx-light)
	benches/all $(BENCH)

prove:
	tests/prove
