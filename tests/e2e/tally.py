"""What a test has checked: each check that fails is printed, and all are counted."""
import sys
import traceback

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


def run(cases):
    """Runs the cases, or those that the command line names, each to its end; returns the exit code of the test."""
    chosen = [case for case in cases if len(sys.argv) < 2 or any(name in case.__name__ for name in sys.argv[1:])]
    failed = 0
    for case in chosen:
        try:
            case()
            print("passed:", case.__name__.replace("_", " "))
        except BaseException as error:  # a SystemExit of the server class is a failure, too
            failed += 1
            print("FAILED:", case.__name__.replace("_", " "))
            traceback.print_exc()
            if isinstance(error, KeyboardInterrupt):
                raise
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0
