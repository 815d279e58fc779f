export { createStreamingServer, type StreamingDeps } from './server.ts';
