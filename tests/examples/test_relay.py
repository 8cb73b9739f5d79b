"""The environment by hand that CONTRIBUTING names."""

from coterie import envs


def test_it_keeps_the_contract() -> None:
    envs.check_env(envs.make("examples.relay:Relay"))


def test_both_are_paid_if_the_reader_names_the_word() -> None:
    from examples.relay import Relay

    env = Relay()
    observations, _ = env.reset(seed=4)  # 4 mod 3 = 1: green
    assert observations["writer_0"] == {"text": "The word is green. Describe it: ", "active": 1}
    observations, rewards, *_ = env.step({"writer_0": "like grass"})
    assert observations["reader_0"] == {"text": "like grass\nThe word: ", "active": 1}
    assert rewards == {"writer_0": 0.0, "reader_0": 0.0}
    _, rewards, terminations, *_ = env.step({"reader_0": "green!"})
    assert rewards == {"writer_0": 1.0, "reader_0": 1.0}
    assert all(terminations.values())
    assert env.agents == []
