#!/bin/bash
#SBATCH --job-name=coterie
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=32
#SBATCH --time=12:00:00
# Not run here. One Ray node on each node of the job; train.py on the first. `sbatch slurm.sh` in a checkout
# that every node sees under the same path, with the virtual environment in .venv.
set -euo pipefail
source .venv/bin/activate

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address=$(srun --nodes=1 --ntasks=1 --nodelist="$head" hostname --ip-address | awk '{print $1}')
export RAY_AUTH_MODE=token
RAY_AUTH_TOKEN=$(openssl rand -hex 32) # srun hands the environment on; nobody else knows it
export RAY_AUTH_TOKEN

srun --nodes=1 --ntasks=1 --nodelist="$head" \
    ray start --head --node-ip-address="$address" --port=6379 --include-dashboard=false --block &
sleep 20
if [ "$SLURM_JOB_NUM_NODES" -gt 1 ]; then
    srun --nodes=$((SLURM_JOB_NUM_NODES - 1)) --ntasks=$((SLURM_JOB_NUM_NODES - 1)) --exclude="$head" \
        ray start --address="$address:6379" --block &
    sleep 20
fi

# The run ends 10 minutes early, saved, where Slurm ends the job: sbatch --signal=B:INT@600 slurm.sh
# That signal goes to this script alone, which runs on the first node: the command takes its place.
exec python train.py --cluster.address "$address:6379" "$@"
