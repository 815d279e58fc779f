/**
 * Pod network between hosts: a pure planner of routes and VXLAN entries, and their difference from the kernel's state.
 */
export { overlayChanges } from './difference.ts';
export { lastKnownNode } from './last-known-node.ts';
export { type Backend, type OverlayInput, type Peer, planOverlay, tunnelMac } from './plan.ts';
