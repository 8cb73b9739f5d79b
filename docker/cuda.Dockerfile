# docker build -f docker/cuda.Dockerfile -t coterie-cuda .
# mkdir -p runs && docker run --rm --gpus all --user "$(id -u):$(id -g)" -v "$PWD/runs:/coterie/runs" coterie-cuda
# Docker makes a missing runs/ root's, where nobody else writes.
# PyPI's torch for Linux brings CUDA's libraries; the host needs the driver and NVIDIA's container toolkit.
FROM python:3.12-slim

ENV PIP_NO_CACHE_DIR=1 PYTHONUNBUFFERED=1
WORKDIR /coterie

# Triton compiles kernels when they are first used.
RUN apt-get update && apt-get install -y --no-install-recommends gcc=4:* libc6-dev=2.* \
    && rm -rf /var/lib/apt/lists/*
COPY . .
# Engines that sample with vLLM: EXTRAS=vllm.
ARG EXTRAS=""
RUN pip install -e ".${EXTRAS:+[$EXTRAS]}" && useradd --create-home --uid 1000 learner && mkdir runs && chown 1000 runs
# A user of the host has no home here; what is downloaded goes below this one.
ENV HOME=/tmp
USER 1000

ENTRYPOINT ["coterie"]
CMD ["train", "--env", "core-teaching", "--algo", "gspo"]
