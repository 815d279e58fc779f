export { createPodRoutes, type PodRoutes } from './pod-routes.ts';
