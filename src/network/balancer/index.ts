export { createNodeBalancer, type NodeBalancer } from './balancer.ts';
