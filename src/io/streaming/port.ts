/**
 * The streaming port: serves Kubernetes' remote-command and port-forward protocols on a connection that asked to be
 * upgraded (`Upgrade: SPDY/3.1` or `Upgrade: websocket`). The caller has already authenticated and authorised the
 * request and parsed its URL. Source: k8s.io/apimachinery `remotecommand` constants, KEP-4006 (WebSocket transition).
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { AttachOptions, ByteStream, ProcessStreams } from '../../core/podplan/port.ts';

export interface StreamingServer {
  /**
   * Serves exec and attach. `requested` are the streams that the URL asks for (`stdin|stdout|stderr|tty` at the API
   * server, `input|output|error|tty` at the kubelet); with `tty`, `stderr` is dropped. `open` is called once, after the
   * client has made its streams, with the streams that are really wanted. A rejection of `open` is reported to the
   * client on the error stream.
   *
   * An unusable upgrade request is answered with a plain HTTP error (400 or 403). Resolves when the session is over and
   * the socket closed; never rejects. The process is closed when the client goes away.
   */
  handleRemoteCommand(
    request: IncomingMessage,
    socket: Duplex,
    head: Uint8Array,
    requested: AttachOptions,
    open: (streams: AttachOptions) => Promise<ProcessStreams>,
  ): Promise<void>;

  /**
   * Serves port forwarding. `connect` is called for each forwarded connection; a rejection is reported to the client on
   * that connection's error stream and leaves the others alone. Resolves when the session is over; never rejects.
   */
  handlePortForward(
    request: IncomingMessage,
    socket: Duplex,
    head: Uint8Array,
    connect: (port: number) => Promise<ByteStream>,
  ): Promise<void>;

  /** Ends every open session (their processes are closed) and resolves when they are gone. */
  stop(): Promise<void>;
}
