FROM python:3.11-slim AS build
WORKDIR /src
COPY deploy/runtime.lock deploy/runtime.lock
RUN python -m venv /opt/processor \
    && /opt/processor/bin/pip install --no-cache-dir --require-hashes -r deploy/runtime.lock
COPY pyproject.toml README.md LICENSE ./
COPY processor processor
RUN /opt/processor/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.11-slim
RUN useradd --system --uid 10001 --no-create-home processor
COPY --from=build /opt/processor /opt/processor
ENV PATH=/opt/processor/bin:$PATH \
    PYTHONUNBUFFERED=1
USER 10001
# A few seconds of a blocked event loop are no reason to start it again.
HEALTHCHECK --interval=15s --timeout=10s --start-period=30s --retries=4 CMD ["processor", "health"]
# The worker commits what is staged and leaves its group within 25 seconds.
STOPSIGNAL SIGTERM
ENTRYPOINT ["processor"]
CMD ["worker"]
