"""What a test has checked: each check that fails is printed, and all are counted."""

failures = []
passes = 0


def check(holds, what):
    global passes
    if holds:
        passes += 1
    else:
        failures.append(what)
        print("FAILED:", what)


def summary():
    """The last line of a test that ends by its count."""
    return f"{passes} passed, {len(failures)} failed"
