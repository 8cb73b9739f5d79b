"""Any environment of Coterie in TorchRL, which needs the fixed shapes of the padded view.

``python -m examples.torchrl_rollout [ENV]`` checks the specs and plays one episode at random. The
token ids of group ``alice`` are ``rollout["alice", "observation", "tokens"]``, (steps, agents, L);
id V, the vocabulary's size, is padding.
"""

import sys
import warnings
from collections.abc import Sequence

from coterie import envs
from coterie.envs.padded_view import PaddedView


def main(argv: Sequence[str]) -> None:
    """Play one episode of the environment named first (default: core-teaching)."""
    # TorchRL warns about versions of PettingZoo that it was not tested with.
    warnings.filterwarnings("ignore", message="PettingZoo in TorchRL is tested")
    from torchrl.envs import check_env_specs
    from torchrl.envs.libs.pettingzoo import PettingZooWrapper

    name = argv[0] if argv else "core-teaching"
    padded = PaddedView(envs.make(name), context_length=256, action_length=16)
    # Idle agents stay alive and are marked by ``active``, so no mask is needed.
    env = PettingZooWrapper(env=padded, use_mask=False, seed=0)
    check_env_specs(env)
    rollout = env.rollout(max_steps=20)
    groups: dict[str, list[str]] = env.group_map  # pyright: ignore[reportAssignmentType]
    for group, agents in groups.items():
        seen = rollout[group, "observation", "tokens"]
        paid = rollout["next", group, "reward"].sum()
        print(f"{group} ({', '.join(agents)}): tokens {tuple(seen.shape)}, reward {paid:.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
