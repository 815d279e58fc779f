/** The pod network between hosts: a pure planner of routes and VXLAN entries, and the difference to what is there. */
export { overlayChanges } from './difference.ts';
export { lastKnownNode } from './last-known-node.ts';
export { type Backend, type OverlayInput, type Peer, planOverlay, tunnelMac } from './plan.ts';
