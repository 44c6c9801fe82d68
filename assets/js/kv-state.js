// The page's state in its address: shareable, without a reload and without the server.
KV.state = (() => {
  let pending = null; // an address that the browser would not take yet: Safari allows about 100 changes in 30 s
  let timer = 0;
  const current = () => new URL(pending ?? location);

  function write(url) {
    clearTimeout(timer);
    try {
      history.replaceState(history.state, "", url);
      pending = null;
    } catch {
      pending = url;
      timer = setTimeout(() => pending && write(pending), 1000);
    }
  }

  return {
    // The value of a key in the query, or null.
    get: (key) => current().searchParams.get(key),
    // Write several keys; null or undefined removes a key.
    set: (values) => {
      const url = current();
      for (const [key, value] of Object.entries(values)) {
        if (value === null || value === undefined) url.searchParams.delete(key);
        else url.searchParams.set(key, String(value));
      }
      if (url.href !== current().href) write(url.href);
    },
  };
})();
