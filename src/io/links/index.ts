export { type BridgeNetwork, type BridgeNetworkDeps, createBridgeNetwork } from './bridge-network.ts';
