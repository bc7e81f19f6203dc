"""Tokens end: those of clouds' credential plugins after minutes. The connection outlives them."""

import asyncio
import base64
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from kopeck.api.errors import ConfigError
from kopeck.kube.connection import connection, kopf_connection


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def write_kubeconfig(path: Path, user: dict[str, object], **cluster: object) -> None:
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "one",
                "contexts": [{"name": "one", "context": {"cluster": "one", "user": "me"}}],
                "clusters": [
                    {"name": "one", "cluster": {"server": "http://127.0.0.1:1"} | cluster}
                ],
                "users": [{"name": "me", "user": user}],
            }
        )
    )


def a_plugin(folder: Path) -> dict[str, object]:
    """A credential plugin that gives what is in the file `token`, and fails without it."""
    version = "client.authentication.k8s.io/v1"
    credential = f'{{"apiVersion":"{version}","kind":"ExecCredential","status":{{"token":"%s"}}}}'
    script = f"token=$(cat {folder}/token) && printf '{credential}' $token"
    return {"exec": {"apiVersion": version, "command": "sh", "args": ["-c", script]}}


def tokens_of_two_logins(
    kubeconfig: Path, between: float, change: Callable[[], object]
) -> list[str]:
    """What kopf logs in with at first, and after a change and so many seconds."""

    async def log_in_twice() -> list[str]:
        clock = Clock()
        configuration = await connection(kubeconfig, clock)
        first = (await kopf_connection(configuration)).token
        change()
        clock.seconds = between
        return [first or "", (await kopf_connection(configuration)).token or ""]

    return asyncio.run(log_in_twice())


def test_a_plugins_next_token_is_taken_a_minute_later(tmp_path: Path) -> None:
    token, kubeconfig = tmp_path / "token", tmp_path / "kubeconfig"
    write_kubeconfig(kubeconfig, a_plugin(tmp_path))
    token.write_text("first")

    def rotate() -> None:
        token.write_text("second")

    assert tokens_of_two_logins(kubeconfig, 60, rotate) == ["first", "second"]
    token.write_text("first")
    assert tokens_of_two_logins(kubeconfig, 59, rotate) == ["first", "first"]


def test_a_token_file_that_is_replaced_is_read_again(tmp_path: Path) -> None:
    token, kubeconfig = tmp_path / "token", tmp_path / "kubeconfig"
    write_kubeconfig(kubeconfig, {"tokenFile": str(token)})
    token.write_text("first")
    assert tokens_of_two_logins(kubeconfig, 60, lambda: token.write_text("second")) == [
        "first",
        "second",
    ]


@pytest.mark.parametrize("lost", ["token", "kubeconfig"])
def test_the_old_token_stays_where_none_can_be_had(tmp_path: Path, lost: str) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    write_kubeconfig(kubeconfig, a_plugin(tmp_path))
    (tmp_path / "token").write_text("first")
    tokens = tokens_of_two_logins(kubeconfig, 60, (tmp_path / lost).unlink)
    assert tokens == ["first", "first"]


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be used \(.*\); set KUBECONFIG or --kubeconfig"):
        asyncio.run(connection(tmp_path / "kubeconfig"))


NOTHING = base64.b64encode(b"nothing").decode()


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"a: [", b"- 1", b"users: [1]", b"\x7fELF\xff", b"contexts:\n"]
)
def test_a_broken_kubeconfig_is_refused_and_never_read_over_a_good_one(
    tmp_path: Path, content: bytes
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_bytes(content)
    with pytest.raises(ConfigError, match=r"kubeconfig: .*; set KUBECONFIG or --kubeconfig"):
        asyncio.run(connection(kubeconfig))
    write_kubeconfig(kubeconfig, {"token": "first"})
    tokens = tokens_of_two_logins(kubeconfig, 60, lambda: kubeconfig.write_bytes(content))
    assert tokens == ["first", "first"]


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({"certificate-authority-data": NOTHING}, {}),
        ({}, {"client-certificate-data": NOTHING, "client-key-data": NOTHING}),
    ],
)
def test_certificates_that_are_none_are_refused(
    tmp_path: Path, cluster: dict[str, object], user: dict[str, object]
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    write_kubeconfig(kubeconfig, user, server="https://127.0.0.1:1", **cluster)
    with pytest.raises(ConfigError, match=r"cannot be used \(.*\); set KUBECONFIG"):
        asyncio.run(connection(kubeconfig))
