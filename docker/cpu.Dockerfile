# docker build -f docker/cpu.Dockerfile -t coterie . && docker run --rm -v "$PWD/runs:/coterie/runs" coterie
FROM python:3.12-slim

ENV PIP_NO_CACHE_DIR=1 PYTHONUNBUFFERED=1
WORKDIR /coterie

# With the index of builds without CUDA, which pytorch.org's installation page names, torch is a
# tenth as large: --build-arg PIP_EXTRA_INDEX_URL=...
ARG PIP_EXTRA_INDEX_URL=""
RUN pip install "torch>=2.11,<2.14"
COPY . .
RUN pip install -e . && useradd --create-home --uid 1000 learner && mkdir runs && chown 1000 runs
USER 1000

ENTRYPOINT ["coterie"]
CMD ["train", "--env", "core-teaching", "--algo", "gspo"]
