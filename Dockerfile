# The dashboard, its command line and the nodes of a Ray cluster: one image. See docs/deploying.md.
FROM python:3.11-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
# The index of PyTorch's wheels for CPUs, which are a tenth of the size of those for GPUs; empty: the default ones.
ARG PIP_EXTRA_INDEX_URL=""
WORKDIR /app
RUN python -m venv /opt/venv
# Only what the dependencies follow from: a change of the source leaves this layer as it is.
COPY pyproject.toml constraints.txt README.md LICENSE ./
RUN /opt/venv/bin/pip install --constraint constraints.txt --editable '.[login,postgres,distributed]'

FROM python:3.11-slim
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    EXEGESIS_HOME=/var/lib/exegesis \
    RAY_USAGE_STATS_ENABLED=0
RUN useradd --system --uid 10001 --create-home exegesis \
    && install --directory --owner=exegesis --group=exegesis --mode=0700 "$EXEGESIS_HOME"
COPY --from=build /opt/venv /opt/venv
WORKDIR /app
COPY . .
USER 10001
VOLUME /var/lib/exegesis
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://localhost:8501/healthz', timeout=8)"]
ENTRYPOINT ["/app/deploy/start.sh"]
CMD ["app", "--host", "0.0.0.0", "--headless"]
