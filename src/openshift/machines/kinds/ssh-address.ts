/** Parser for the SSH address of a BareMetalHost, `ssh://[USER@]HOST[:PORT]`. */
export interface SshAddress {
  readonly user: string;
  /** Host name or IP address. An IPv6 address has no brackets. */
  readonly host: string;
  readonly port: number;
}

const ADDRESS =
  /^ssh:\/\/(?:([a-z_][a-z0-9_-]{0,31})@)?(?:\[([0-9a-fA-F:]{2,45})\]|([A-Za-z0-9][A-Za-z0-9.-]{0,252}))(?::(\d{1,5}))?\/?$/;

/** Parses the address; undefined if the text is not a valid address. */
export function sshAddressOf(text: string): SshAddress | undefined {
  const [, user = 'root', v6, name, port = '22'] = ADDRESS.exec(text) ?? [];
  const host = v6 ?? name;
  if (host === undefined || Number(port) < 1 || Number(port) > 65_535) return undefined;
  return { user, host, port: Number(port) };
}
