"""Take out what the theme adds to every page that would ask another host for something."""

from sphinx.application import Sphinx

# Both write scripts that load a kernel launcher from a CDN, even where it is switched off. Its hook
# for static files stays, or a style sheet would be missing.
UNWANTED = {"init_thebe_core", "update_thebe_context"}


def setup(app: Sphinx) -> None:
    for event, listeners in app.events.listeners.items():
        app.events.listeners[event] = [
            listener
            for listener in listeners
            if not (
                listener.handler.__module__ == "sphinx_thebe"
                and listener.handler.__name__ in UNWANTED
            )
        ]
