import type { DetailedPeerCertificate, TLSSocket } from 'node:tls';
import type { GatedConnection } from '../../../wire/connections/gate.ts';
import { HttpConnection } from '../../../wire/connections/http-connection.ts';
import type { ConnectionInfo } from '../../port.ts';

const MAX_CHAIN = 8;

export class TlsConnection extends HttpConnection implements ConnectionInfo {
  readonly remoteAddress: string;
  readonly peerChain: readonly Uint8Array[] | undefined;
  readonly peerRefused: boolean;
  readonly peerExpired?: readonly Uint8Array[];

  constructor(socket: TLSSocket, gated: GatedConnection) {
    super(socket, gated);
    this.remoteAddress = socket.remoteAddress ?? '';
    const chain = chainOf(socket);
    this.peerChain = socket.authorized ? chain : undefined;
    this.peerRefused = chain !== undefined && !socket.authorized;
    if (chain !== undefined && isExpired(socket)) this.peerExpired = chain;
  }
}

function isExpired({ authorized, authorizationError }: TLSSocket): boolean {
  // Node's types declare an Error, but the socket of a server has the code of OpenSSL as a string.
  return !authorized && String(authorizationError) === 'CERT_HAS_EXPIRED';
}

function chainOf(socket: TLSSocket): Uint8Array[] | undefined {
  const chain: Uint8Array[] = [];
  let current: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  while (current?.raw !== undefined && chain.length < MAX_CHAIN) {
    chain.push(current.raw);
    const issuer: DetailedPeerCertificate | undefined = current.issuerCertificate;
    current = issuer === current ? undefined : issuer;
  }
  return chain.length === 0 ? undefined : chain;
}
