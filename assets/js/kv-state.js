// The page's state in its address: shareable, without a reload and without the server.
KV.state = {
  // The value of a key in the query, or null.
  get: (key) => new URL(location).searchParams.get(key),
  // Write several keys; null or undefined removes a key.
  set: (values) => {
    const url = new URL(location);
    for (const [key, value] of Object.entries(values)) {
      if (value === null || value === undefined) url.searchParams.delete(key);
      else url.searchParams.set(key, String(value));
    }
    if (url.href !== location.href) history.replaceState(history.state, "", url);
  },
};
