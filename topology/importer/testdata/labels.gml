# Converted by hand from a provider's map of 2003.
graph [
  directed 0
  Network "Carrier"
  node [ id 0 label "Aarhus" Country "Denmark" Longitude 10.21076 Latitude 56.15674 Internal 1 ]
  node [ id 1 label "Odense" Longitude 10.38831 Latitude 55.39594 Internal 1 ]
  node [ id 2 label "K&#248;benhavn" Longitude 12.56553 Latitude 55.67594 Internal 1 ]
  node [ id 3 label "Esbjerg" Internal 1 ]
  node [ id 4 label "Exchange (NetIX)" Internal 0 ]
  edge [ source 0 target 1 LinkLabel "45 Mbps DS-3" ]
  edge [ source 1 target 2 LinkLabel "OC-48 (2.5 Gbps)" LinkNote " leased" ]
  edge [ source 0 target 2 LinkLabel "2 x 10 Gbit/s" ]
  edge [ source 2 target 0 LinkLabel "10G" ]
  edge [ source 0 target 3 LinkLabel "10-100 Mbps" ]
  edge [ source 1 target 3 LinkLabel "< 155 Mbps" ]
  edge [ source 2 target 3 LinkLabel "34 Mbps or 45 Mbps" ]
  edge [ source 2 target 4 LinkSpeed "1" LinkSpeedUnits "G" LinkLabel "1 Gbps" ]
]
