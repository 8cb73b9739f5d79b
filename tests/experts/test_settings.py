"""A wrong setting is refused with a sentence."""

import pytest

from coterie.datatypes import UserError
from coterie.experts import ScriptedSettings, ServerSettings


@pytest.mark.parametrize(
    ("base_url", "endpoint"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1/chat/completions"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1/chat/completions"),
        ("http://localhost:8000/v1/", "http://localhost:8000/v1/chat/completions"),
        ("https://example.org/llm/v3", "https://example.org/llm/v3/chat/completions"),
        ("http://[::1]:8000", "http://[::1]:8000/v1/chat/completions"),
    ],
)
def test_endpoint(base_url, endpoint):
    assert ServerSettings(base_url=base_url, model="m").endpoint == endpoint


@pytest.mark.parametrize(
    "base_url",
    [
        "", "127.0.0.1:8000", "localhost", "ftp://host/v1", "http://", "http:///v1", "file:///etc",
        "http://host:99999/v1", "http://host:port/v1", "http://ho st/v1", "http://host/v1\n",
        "http://[::1/v1", "http://user:secret@host/v1", "http://host/v1?key=secret",
        "http://host/v1#x", "http://" + "a" * 300 + "/v1", "http://a..b/v1", "http://é_/v1",
        "http://[fe80::1%25]/v1", "http://a%b/v1", "http://" + "a." * 10**5,
    ],
)  # fmt: skip
def test_bad_address(base_url):
    with pytest.raises(UserError, match="base_url") as error:
        ServerSettings(base_url=base_url, model="m")
    assert "secret" not in str(error.value)


SERVER = {"base_url": "http://h", "model": "m"}
SERVERS = [
    ({"model": ""}, "model name"),
    ({"base_url": "https://h/v1/chat/completions"}, "before /chat/completions, which is added"),
    ({"base_url": "http://h/v1/completions/"}, "before /completions, which is added"),
    ({"api_key_env": "sk-abc"}, "must name the environment variable that holds the key"),
    ({"api": "completions", "system_prompt": "x"}, "system_prompt"),
    ({"retries": -1}, "retries is -1; it must be at least 0"),
    ({"extra_body": "{"}, "JSON object"),
    ({"extra_body": "[1]"}, "JSON object"),
    ({"extra_body": '{"stream": true}'}, "'stream'"),
]
SCRIPTS = [
    ({"p_right": 1.5}, "p_right"),
    ({"template": "Answer:"}, "template"),
    ({"hint_template": ""}, "hint_template"),
]


@pytest.mark.parametrize(
    ("kind", "fields", "match"),
    [
        *((ServerSettings, SERVER | fields, match) for fields, match in SERVERS),
        *((ScriptedSettings, fields, match) for fields, match in SCRIPTS),
    ],
)
def test_bad_setting(kind, fields, match):
    with pytest.raises(UserError, match=match):
        kind(**fields)
