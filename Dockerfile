# PostgreSQL with duroxide_queue: the official image, and the package that 'make package' makes.
#
#   docker build --build-arg PG=17 -t duroxide_queue:17 .
#   docker run --rm -e POSTGRES_PASSWORD=secret -p 5432:5432 duroxide_queue:17
#
# The project's tests do not build it: they run where there is no Docker engine. They do make the package and install it
# into an empty root that is laid out as the image is.

ARG PG=17

FROM rust:1.95-bookworm AS rust

FROM postgres:${PG}-bookworm AS build
COPY --from=rust /usr/local/cargo /usr/local/cargo
COPY --from=rust /usr/local/rustup /usr/local/rustup
ENV CARGO_HOME=/usr/local/cargo RUSTUP_HOME=/usr/local/rustup PATH=/usr/local/cargo/bin:$PATH
# What else is missing, 'make package' installs.
RUN apt-get update && \
    apt-get install -y --no-install-recommends build-essential ca-certificates postgresql-server-dev-$PG_MAJOR
COPY . /duroxide_queue
WORKDIR /duroxide_queue
RUN make package PG_CONFIG=/usr/lib/postgresql/$PG_MAJOR/bin/pg_config

FROM postgres:${PG}-bookworm
COPY --from=build /duroxide_queue/dist/*.deb /tmp/
RUN dpkg --install /tmp/postgresql-*-duroxide-queue_*.deb && rm /tmp/postgresql-*-duroxide-queue_*.deb
# In the database that the image makes at its first start.
RUN echo 'CREATE EXTENSION duroxide_queue;' >/docker-entrypoint-initdb.d/duroxide_queue.sql
