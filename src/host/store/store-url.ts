/**
 * Whether the text is a URL of a store's endpoint: `http://HOST:PORT`, `https://HOST:PORT`, `unix://PATH` or
 * `unixs://PATH`. Source: etcd's client/v3/internal/endpoint.
 */
export function isStoreUrl(text: string): boolean {
  return /^(?:https?:\/\/[^/\s]+\/?|unixs?:\/\/\S+)$/.test(text) && URL.canParse(text);
}
