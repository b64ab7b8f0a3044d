# A container with model_deploy in an environment of its own; a user without rights, no port open.
#
#   docker build -t model_deploy .                                  # CPU
#   docker build -t model_deploy:cuda --build-arg EXTRAS=cuda .     # CUDA of TensorFlow's own wheels
#   docker run --rm -v "$PWD/runs:/runs" model_deploy train_image_classifier --train_dir=/runs/digits
#
# `podman` and `buildah bud` take the same words.  EXTRAS takes several, as cuda,tensorboard.
ARG BASE=docker.io/library/debian:bookworm-slim

FROM ${BASE} AS build
ARG EXTRAS=
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3-venv \
 && rm -rf /var/lib/apt/lists/*
COPY . /source
RUN python3 -m venv /opt/model_deploy \
 && /opt/model_deploy/bin/pip install --no-cache-dir "/source${EXTRAS:+[$EXTRAS]}"

FROM ${BASE}
RUN apt-get update \
 && apt-get install --yes --no-install-recommends python3 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 1000 --create-home trainer \
 && install --directory --owner=trainer /runs
COPY --from=build /opt/model_deploy /opt/model_deploy
# With NVIDIA's container toolkit the driver of the host comes in; what is not a GPU's pod gets none.
ENV PATH=/opt/model_deploy/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER trainer
WORKDIR /runs
VOLUME /runs
CMD ["train_image_classifier", "--help"]
