#!/bin/bash -eux
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The launch script of PERSIA's document about Google Cloud, with the programs and flags of today. Ranks, sizes and addresses come from
# the environment, and a failure ends the pod with its own status.
case $1 in
    trainer)
        exec python3 -m torch.distributed.launch --nproc_per_node="$NPROC_PER_NODE" --nnodes="$REPLICA_SIZE" --node_rank="$NODE_RANK" \
            "$PERSIA_NN_WORKER_ENTRY"
        ;;
    datacompose) exec python3 "$PERSIA_DATALOADER_ENTRY" ;;
    middleware) server='persia-embedding-worker' ;;
    embserver) server='persia-embedding-parameter-server' ;;
esac
persia=$(python3 -c 'import importlib.util; print(importlib.util.find_spec("persia").submodule_search_locations[0])')
exec "$persia/$server" --port "$PERSIA_PORT" \
    --global-config "$PERSIA_GLOBAL_CONFIG" --embedding-config "$PERSIA_EMBEDDING_CONFIG" \
    --replica-index "$REPLICA_INDEX" --replica-size "$REPLICA_SIZE"
