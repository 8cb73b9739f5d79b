"""What a user did wrong, in one sentence."""


class UserError(Exception):
    """A mistake in the user's input. Its message is one sentence that names the way out.

    Entry scripts print the message and exit with code 2; it never shows a traceback.
    """
