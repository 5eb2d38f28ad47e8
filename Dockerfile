# tiedtools in a container. Kernels are compiled for the CPU that runs them, so they are not in the image but in a volume, which
# may hold those of several kinds of CPU. --user writes files as you; a volume belongs to the first user who fills it.
#
#     docker build -t tiedtools .
#     docker run --rm --user "$(id -u):$(id -g)" -v tiedtools-kernels:/cache tiedtools warmup     # once on each kind of CPU
#     docker run --rm --user "$(id -u):$(id -g)" -v tiedtools-kernels:/cache -v "$PWD:/data" tiedtools \
#         w2v -train text.txt -output vectors.txt

FROM python:3.13-slim AS build
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.13-slim
RUN --mount=from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir "$(echo /wheels/*.whl)[plot,explore,subwords,text]"
# In it, tiedtools makes a folder of mode 0700 that belongs to the user.
RUN mkdir -m 1777 /cache
ENV XDG_CACHE_HOME=/cache MPLCONFIGDIR=/tmp
VOLUME /cache
WORKDIR /data
USER 1000:1000
ENTRYPOINT ["tiedtools"]
