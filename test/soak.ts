/** Simulations run few seeds with `npm test` and many with `npm run soak`, which sets HYPEREDGE_SOAK. */
const soaking = process.env['HYPEREDGE_SOAK'] === '1';

/** How many seeds, or how often something must have happened in them. */
export const perRun = (usual: number, soak: number): number => (soaking ? soak : usual);
