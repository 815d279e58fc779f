export { callAgent } from './client.ts';
export { createGossipHints } from './hints.ts';
export { followRing } from './ring.ts';
export { type AgentServer, serveAgent } from './server.ts';
