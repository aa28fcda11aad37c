# Tag and digest belong together: docker-library/repo-info keeps which digest a tag of Python has had.
FROM python:3.11.15-slim-trixie@sha256:90744cff8f32887f075c47d747a173ff333e9e98801667af93c357fa9f5e28ff AS python

FROM python AS build
# Set, byte code is checked by hash and not by time: the same sources give the same files.
ARG SOURCE_DATE_EPOCH=0
WORKDIR /src
COPY deploy/runtime.lock deploy/runtime.lock
RUN python -m venv /opt/processor \
    && /opt/processor/bin/pip install --no-cache-dir --require-hashes -r deploy/runtime.lock
COPY pyproject.toml README.md LICENSE ./
COPY processor processor
RUN /opt/processor/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python
# Without `make image` nobody knows it.
ARG COMMIT=
COPY --from=build /opt/processor /opt/processor
# A worker writes no file, so its root file system may be read-only; a home is what some tools ask for.
ENV HOME=/tmp \
    PATH=/opt/processor/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    SOURCE_COMMIT=$COMMIT
USER 10001:10001
# A few seconds of a blocked event loop are no reason to start it again.
HEALTHCHECK --interval=15s --timeout=10s --start-period=30s --retries=4 CMD ["processor", "health"]
# The worker commits what is staged and leaves its group within 25 seconds.
STOPSIGNAL SIGTERM
ENTRYPOINT ["processor"]
CMD ["worker"]
