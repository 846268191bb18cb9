# The static program and nothing else. From the root of the repository, after `./release --dry-run binaries`:
#   docker build -t lopa .
#   docker run --rm --user "$(id -u)" -v "$PWD:/work" lopa run experiment.toml
FROM scratch
COPY target/x86_64-unknown-linux-musl/dist/lopa /bin/lopa
WORKDIR /work
ENTRYPOINT ["/bin/lopa"]
