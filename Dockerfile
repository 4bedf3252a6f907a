# One binary, a certificate store and a C library; no shell, no root.
#
#   docker build -t longhaul .
#   docker run --rm --read-only -p 127.0.0.1:4180:4180 -v longhaul:/data -e LONGHAUL_ADMIN_TOKEN longhaul
#
# Where these registries cannot be reached, other images take their place: the
# first needs cargo and a C compiler, the second glibc at least as new as the
# first's, libgcc and certificates.
ARG BUILD_IMAGE=docker.io/library/rust:1.95-bookworm
ARG RUN_IMAGE=gcr.io/distroless/cc-debian12:nonroot

FROM ${BUILD_IMAGE} AS build
ARG PROFILE=release
WORKDIR /source
COPY Cargo.toml Cargo.lock ./
COPY benches benches
COPY config config
COPY src src
RUN CARGO_PROFILE_RELEASE_DEBUG=false CARGO_PROFILE_RELEASE_STRIP=symbols \
    cargo build --locked --profile "$PROFILE" --bin longhaul \
    && mkdir -p -m 700 /out/data \
    && cp target/*/longhaul /out/

FROM ${RUN_IMAGE}
COPY --from=build /out/longhaul /usr/local/bin/longhaul
# The owner must be able to write here, also when the volume is made from it.
COPY --from=build --chown=65532:65532 /out/data /data
ENV LONGHAUL_LISTEN=0.0.0.0:4180 \
    LONGHAUL_DATA_DIR=/data
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 4180
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=4s --start-period=10s --retries=3 \
    CMD ["/usr/local/bin/longhaul", "health"]
ENTRYPOINT ["/usr/local/bin/longhaul"]
