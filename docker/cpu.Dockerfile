# docker build -f docker/cpu.Dockerfile -t coterie . && docker run --rm -v "$PWD/runs:/coterie/runs" coterie
FROM python:3.12-slim

ENV PIP_NO_CACHE_DIR=1 PYTHONUNBUFFERED=1
WORKDIR /coterie

# The builds of torch without CUDA are a tenth as large.
RUN pip install "torch>=2.13,<2.14" --index-url https://download.pytorch.org/whl/cpu
COPY . .
RUN pip install -e . && useradd --create-home --uid 1000 learner && mkdir runs && chown 1000 runs
USER 1000

ENTRYPOINT ["coterie"]
CMD ["train", "--env", "core-teaching", "--algo", "gspo"]
