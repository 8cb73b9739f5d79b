# docker build -f docker/cuda.Dockerfile -t coterie-cuda . && docker run --rm --gpus all -v "$PWD/runs:/coterie/runs" coterie-cuda
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
USER 1000

ENTRYPOINT ["coterie"]
CMD ["train", "--env", "core-teaching", "--algo", "gspo"]
