"""CONTRACT.md names every check that there is."""

from pathlib import Path

from bayeszoo.contract.check import IDENTITIES

PAGE = Path(__file__).parents[1].joinpath("CONTRACT.md").read_text(encoding="utf-8")


def test_contract_names_every_identity():
    table = "\n".join(line for line in PAGE.splitlines() if line.startswith("|"))
    assert [one.function for one in IDENTITIES if f"`{one.function}`" not in table] == []
