/** Parses `10.0.0.5:8443` or `[fd00::5]:8443` for `net.connect`. */
export function parseAuthority(text: string): { readonly host: string; readonly port: number } {
  const colon = text.lastIndexOf(':');
  return { host: text.slice(0, colon).replace(/^\[(.*)\]$/, '$1'), port: Number(text.slice(colon + 1)) };
}
