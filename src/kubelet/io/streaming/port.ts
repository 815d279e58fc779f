/**
 * The streaming port: serves Kubernetes' remote-command and port-forward protocols on a connection with an upgrade
 * request (`Upgrade: SPDY/3.1` or `Upgrade: websocket`). The caller must have authenticated and authorized the request
 * and parsed its URL. Source: k8s.io/apimachinery `remotecommand` constants, KEP-4006 (WebSocket transition).
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { AttachOptions, ByteStream, ProcessStreams } from '../../../runtime/port.ts';

export interface StreamingServer {
  /**
   * Serves exec and attach. `requested` are the streams in the URL (`stdin|stdout|stderr|tty` at the API server,
   * `input|output|error|tty` at the kubelet); with `tty`, `stderr` is dropped. `open` is called once, after the client
   * has opened its streams, with the streams to connect. A rejection of `open` is reported to the client on the error
   * stream.
   *
   * An invalid upgrade request gets a plain HTTP error (400 or 403). Resolves when the session has ended and the socket
   * is closed; never rejects. The process is closed when the client disconnects.
   */
  handleRemoteCommand(
    request: IncomingMessage,
    socket: Duplex,
    head: Uint8Array,
    requested: AttachOptions,
    open: (streams: AttachOptions) => Promise<ProcessStreams>,
  ): Promise<void>;

  /**
   * Serves port forwarding. `connect` is called for each forwarded connection. A rejection is reported to the client on
   * that connection's error stream and does not affect the other connections. Resolves when the session has ended;
   * never rejects.
   */
  handlePortForward(
    request: IncomingMessage,
    socket: Duplex,
    head: Uint8Array,
    connect: (port: number) => Promise<ByteStream>,
  ): Promise<void>;

  /** Ends every open session and closes its process; resolves when all have ended. */
  stop(): Promise<void>;
}
