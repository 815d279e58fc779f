export { createDnsCodec } from './codec.ts';
export { createDnsSockets } from './sockets.ts';
export { createUpstreamExchange } from './upstream.ts';
