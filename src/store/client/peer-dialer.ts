import { Channel, type ChannelOptions } from '../../wire/grpc/channel.ts';
import type { DialPeer, PeerChannel } from '../disk/port.ts';

/** A quorum may wait for a member to return: connections to peers are retried without a long back-off. */
const LAST_RETRY_MS = 200;

/** Uses TLS 1.3 with this member's own certificate if the addresses are https. */
export function createPeerDialer(
  options: Pick<ChannelOptions, 'ca' | 'cert' | 'key' | 'materials' | 'anyServer' | 'log' | 'clock'>,
): DialPeer {
  return (urls, refused): PeerChannel => {
    const channel = new Channel({
      ...options,
      endpoints: urls,
      minVersion: 'TLSv1.3',
      lastRetryMs: LAST_RETRY_MS,
      refused,
    });
    return {
      get connected() {
        return channel.connected;
      },
      unary: (path, message, timeoutMs) => channel.unary(path, asBuffer(message), timeoutMs),
      stream: (path, events) => {
        const stream = channel.stream(path, events);
        return { send: (message) => stream.send(asBuffer(message)), cancel: () => stream.cancel() };
      },
      close: () => channel.close(),
    };
  };
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
