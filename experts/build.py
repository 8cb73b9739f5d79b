"""From settings to a policy."""

from experts.cache import CachedPolicy
from experts.scripted import ScriptedPolicy
from experts.server import ServerPolicy
from experts.settings import ScriptedSettings, ServerSettings
from vocabulary import TokenCodec, UserError


def build_expert(
    settings: ServerSettings | ScriptedSettings, codec: TokenCodec, *, codec_name: str = ""
) -> ServerPolicy | ScriptedPolicy | CachedPolicy:
    """The policy that ``settings`` describe.

    Args:
        settings: where the expert is, or what it says.
        codec: the role's, in which replies are encoded.
        codec_name: names the codec (a model's id and revision, ``utf-8``). A cache needs it, since
            it stores ids.

    Raises:
        UserError: the API key is not set, the cache folder cannot be used or its codec has no name.
    """
    if isinstance(settings, ScriptedSettings):
        return ScriptedPolicy(settings, codec)
    policy = ServerPolicy(settings, codec)
    if not settings.cache_dir:
        return policy
    if not codec_name:
        raise UserError("a cache stores token ids: name the role's codec, or leave cache_dir empty")
    identity = policy.identity() | {"codec": codec_name, "vocabulary": codec.vocab_size}
    return CachedPolicy(policy, settings.cache_dir, identity=identity)
