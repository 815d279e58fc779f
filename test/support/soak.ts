/** Number of seeds for simulations: few with `npm test`, many with `npm run soak`, which sets HYPEREDGE_SOAK. */
const soaking = process.env['HYPEREDGE_SOAK'] === '1';

/** Number of seeds, or of events that must occur in them. */
export const perRun = (usual: number, soak: number): number => (soaking ? soak : usual);
