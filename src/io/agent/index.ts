/** The agent socket: its server in the host process, a client for commands, and gossip for the store's process. */
export { askAgent } from './client.ts';
export { createGossipHints } from './hints.ts';
export { followRing } from './ring.ts';
export { type AgentServer, serveAgent } from './server.ts';
