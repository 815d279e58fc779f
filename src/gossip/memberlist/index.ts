/** Gossip transport in the wire format of HashiCorp's memberlist. */
export { Keyring } from './keyring.ts';
export { createKeyring, newKeyringText, type OpenedKeyring, openKeyring } from './keyring-file.ts';
export { encodeMessage } from './messages.ts';
export { resolvePeer } from './peer.ts';
export { serfCodec } from './serf.ts';
export { createMemberlistTransport } from './transport.ts';
