"""``python -m pgmpy_dp``, and ``pgmpy-dp``: the command line."""

from pgmpy_dp.signals import before_a_command


def main() -> None:
    """Run the command line: with handlers of signals before anything else of it is there."""
    before_a_command()
    from pgmpy_dp.cli import app

    app(prog_name="pgmpy-dp")


if __name__ == "__main__":
    main()
