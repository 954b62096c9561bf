# polyhop serve without PyTorch; docs/serve.md shows how to run it.
FROM python:3.11-slim

COPY . /build
RUN pip install --no-cache-dir --constraint /build/constraints.txt uv \
    && sed '/^fastapi /d; /^uvicorn /d' /build/overrides.txt > /tmp/overrides.txt \
    && uv pip install --system --no-cache --overrides /tmp/overrides.txt --constraint /build/constraints.txt '/build[serve]' \
    && rm -rf /build \
    && useradd --create-home polyhop

USER polyhop
ENV PYTHONUNBUFFERED=1
EXPOSE 8080
HEALTHCHECK CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8080/health')"]
# The container can be reached by others, so the server asks for POLYHOP_TOKEN.
ENTRYPOINT ["polyhop", "serve", "--host", "0.0.0.0"]
CMD ["--index", "sample"]
