# docker build -f docker/cpu.Dockerfile -t coterie .
# mkdir -p runs && docker run --rm --user "$(id -u):$(id -g)" -v "$PWD/runs:/coterie/runs" coterie
# Docker makes a missing runs/ root's, where nobody else writes.
FROM python:3.12-slim

ENV PIP_NO_CACHE_DIR=1 PYTHONUNBUFFERED=1
WORKDIR /coterie

# With the index of builds without CUDA, which pytorch.org's installation page names, torch is a
# tenth as large: --build-arg PIP_EXTRA_INDEX_URL=...
ARG PIP_EXTRA_INDEX_URL=""
RUN pip install "torch>=2.11,<2.14"
COPY . .
RUN pip install -e . && useradd --create-home --uid 1000 learner && mkdir runs && chown 1000 runs
# A user of the host has no home here; what is downloaded goes below this one.
ENV HOME=/tmp
USER 1000

ENTRYPOINT ["coterie"]
CMD ["train", "--env", "core-teaching", "--algo", "gspo"]
