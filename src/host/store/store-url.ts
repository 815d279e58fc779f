/**
 * True for an endpoint URL of a store: `http://HOST:PORT`, `https://HOST:PORT`, `unix://PATH` or `unixs://PATH`.
 * Source: etcd's client/v3/internal/endpoint.
 */
export function isStoreUrl(text: string): boolean {
  return /^(?:https?:\/\/[^/\s]+\/?|unixs?:\/\/\S+)$/.test(text) && URL.canParse(text);
}
