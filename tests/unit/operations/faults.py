"""A store that fails at a chosen call, for tests of what stays behind."""

from lancetable.errors import StoreError


class FaultyStore:
    """Passes calls on to another store; the call with the given number fails."""

    def __init__(self, inner, fail_at=None):
        self.inner = inner
        self.root = inner.root
        self.fail_at = fail_at
        self.calls = []

    def _count(self, name):
        self.calls.append(name)
        if len(self.calls) == self.fail_at:
            raise StoreError(f"{name}: no space left on device")

    def create(self, path):
        self._count("create")
        return _FaultyFile(self, self.inner.create(path))

    def put(self, path, content):
        self._count("put")
        self.inner.put(path, content)

    def put_loosely(self, path, content):
        self._count("put_loosely")
        self.inner.put_loosely(path, content)

    def put_if_absent(self, path, content):
        self._count("put_if_absent")
        self.inner.put_if_absent(path, content)

    def __getattr__(self, name):
        return getattr(self.inner, name)


class _FaultyFile:
    def __init__(self, store, inner):
        self.store = store
        self.inner = inner

    def write(self, parts):
        self.store._count("write")
        self.inner.write(parts)

    def close(self):
        self.store._count("close")
        self.inner.close()

    def abort(self):
        self.inner.abort()
