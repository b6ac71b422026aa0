"""``python -m pgmpy_dp``: the command line."""

from pgmpy_dp.cli import app

if __name__ == "__main__":
    app(prog_name="pgmpy-dp")
